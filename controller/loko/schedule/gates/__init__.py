"""Gate control lists (IEEE 802.1Q, 8.6.8.4: scheduled traffic) of a schedule, in the formats of the field."""
