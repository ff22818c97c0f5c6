"""Whether a switch is fit for guarantees: the campaigns and the verdict of the predictability study."""
