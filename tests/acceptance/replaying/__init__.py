"""`policy replay`, by what there is to say."""
