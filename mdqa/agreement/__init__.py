"""What people's labels say: whether people agree, with each other and with the judges, and what can be learned."""
