"""Groups of Gradio components that tabs share."""
