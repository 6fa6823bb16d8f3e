"""Tables of whole numbers: counts, sums and places of records, on which plain noise or one selection is enough."""
