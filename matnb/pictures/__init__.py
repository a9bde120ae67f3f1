"""Facts to text, HTML and SVG; pure, without data and without IPython."""
