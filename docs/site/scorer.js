// How the site's search orders what it finds: guides first, decisions last. The numbers are Sphinx's own.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    if (docname.startsWith("guides/") || docname === "first_steps") return score + 20;
    if (docname.startsWith("decisions/") || docname === "coverage") return score - 20;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
