"""What ails a cloud of embeddings, measured, told in words, and drawn."""
