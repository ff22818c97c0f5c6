"""The predictability study: campaigns on a switch, and the verdict whether it is fit for guarantees."""
