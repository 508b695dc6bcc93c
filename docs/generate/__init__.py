"""The reference pages, written from what the code, the schemas and the policies say."""
