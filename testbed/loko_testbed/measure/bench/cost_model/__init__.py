"""Loko's cost model of the Zodiac FX: from a campaign's samples to the numbers of a profile."""
