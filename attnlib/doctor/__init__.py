"""The doctor: examines any layer of attention, and says in numbers what is wrong, what it means and where it is explained.

    from attnlib import doctor

    doctor.examine(my_layer)                  # a module, or a function of query, key and value
    doctor.weights(maps)                      # attention maps [..., n_query, n_key]

A module is copied first and never changed; the global random state is left as it was. A sick layer gives findings, never
an exception; only arguments of ``examine`` that make no sense raise a ``ValueError``.
"""

from attnlib.doctor.examination import examine
from attnlib.doctor.maps import weights
from attnlib.doctor.report import Finding, NotExamined, Passed, Report

__all__ = ["Finding", "NotExamined", "Passed", "Report", "examine", "weights"]
