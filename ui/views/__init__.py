"""Records to HTML, SVG and Plotly figures: pure functions without Gradio, a database or a clock."""
