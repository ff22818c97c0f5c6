"""Software switches of this machine as subjects of the predictability campaign, in real time."""
