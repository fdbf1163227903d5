//! Terminal, HTML, JSON, CSV and Markdown views of an analysis
