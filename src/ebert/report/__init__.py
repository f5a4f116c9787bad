"""Reports on runs: tables, plots, intervals, our figures beside the published ones. Knows results on disk only."""
