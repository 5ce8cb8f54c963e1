"""Setting up by form: one thing is changed as a document of one thing, with the checks that a YAML file passes."""
