"""Time-slot scheduling: TSSDN (Nayak, Duerr, Rothermel: technical report 2016/03, University of Stuttgart).

Hosts send in slots that a controller computed so that no queue ever forms: `problem` says what is asked for,
`time_indexed` has the paper's integer programs, `solvers` solves them, `packing` is quicker and proves as
much.
"""
