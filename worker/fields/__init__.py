"""What settings say of the fields of documents: where they are, and what times look like."""
