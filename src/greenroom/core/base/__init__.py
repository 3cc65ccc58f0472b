"""Words that every other room uses: ids, amounts, records, errors, the clock."""
