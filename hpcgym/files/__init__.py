"""All that is read from files, in bounded memory and time; what is wrong ends in one clear line.

Every reader of the library goes through here, so that none has to know how a file can be damaged:
``opening`` opens, unpacks and decodes, ``texts`` parses JSON and TOML, ``tables`` CSV, Parquet and
arrays, ``headers`` the numbers in headers of traces. ``writing`` writes files whole or not at all,
``plain`` makes results JSON and CSV. ``origin`` says where a file is from, ``recorded`` where that
stands.
"""

from hpcgym.files.reading import (
    MOST_TOML,
    bytes_of,
    check_value,
    check_values,
    head_of,
    header_number,
    json_file,
    json_of,
    lines_of,
    open_bytes,
    plain_number,
    saying,
    shaped,
    text_of,
    toml_file,
    toml_of,
)
from hpcgym.files.tables import (
    MOST_COLUMNS,
    arrays_of,
    check_archive,
    csv_frame,
    csv_lines,
    csv_rows,
    csv_rows_of,
    need_parquet,
    parquet_columns,
    parquet_frame,
    parquet_names,
)

__all__ = [
    "MOST_COLUMNS",
    "MOST_TOML",
    "arrays_of",
    "bytes_of",
    "check_archive",
    "check_value",
    "check_values",
    "csv_frame",
    "csv_lines",
    "csv_rows",
    "csv_rows_of",
    "head_of",
    "header_number",
    "json_file",
    "json_of",
    "lines_of",
    "need_parquet",
    "open_bytes",
    "parquet_columns",
    "parquet_frame",
    "parquet_names",
    "plain_number",
    "saying",
    "shaped",
    "text_of",
    "toml_file",
    "toml_of",
]
