"""What is to be predicted: from cells to classes, labels and numbers."""
