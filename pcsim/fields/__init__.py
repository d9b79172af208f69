"""What is said of fields: allowed values, refusals in sentences, reference pages, schemas."""
