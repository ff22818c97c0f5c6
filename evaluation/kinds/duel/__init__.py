"""Duels: what several systems accept on the same labs, and what becomes of it when somebody misbehaves."""
