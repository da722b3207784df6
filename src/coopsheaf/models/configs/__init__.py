"""Settings of the models, one file per family. Imports no PyTorch until a model is built."""
