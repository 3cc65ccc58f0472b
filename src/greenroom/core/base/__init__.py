"""Types that all other modules use: ids, amounts, records, errors, the clock."""
