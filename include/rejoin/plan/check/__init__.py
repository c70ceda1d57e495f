"""From a topology file (``topology_file``) to a plan (``compile``): every declaration is checked, and every mistake has its line.

``tables``, ``sources``, ``foreign_key_joins``, ``other_joins``, ``groups``, ``expectations``, ``sinks`` check a part each; ``relations`` composes them and
``assemble`` makes the plan.
"""
