"""The page: what people see and press. Only ``app.py`` imports this package."""
