"""What happens where a call goes wrong: which words are meant, and which lines an error shows."""
