"""Wikipedia as it is handed out: dumps, wikitext, links and redirects, and the corpus that vectors are trained on."""
