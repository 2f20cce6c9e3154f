"""Limits that several packages of the harness share, and limits that the host enforces as well (src/protocol/caps.ts; a test
compares them)."""

MAX_EXECUTION_ID = 256  # characters
MAX_NONCE = 64
MAX_DEPTH = 200  # levels of a value
MAX_SAFE_INTEGER = 2**53 - 1

# Characters of the label of an intermediate, and of the level of a log.
MAX_LABEL = 1024
MAX_LEVEL = 64
# Characters of the message and the traceback of an error. The script's process uses lower limits (script/explain.py), so
# that a text of the harness is cut only once.
MAX_ERROR_MESSAGE = 16 << 10
MAX_TRACEBACK = 64 << 10

# Paths of NaNs that a frame lists, and characters of one path.
MAX_NULL_PATHS = 5
MAX_PATH = 400

# Collected files of one run: their number, the size of one, their total size, the depth of a path.
MAX_FILES = 100
MAX_FILE_BYTES = 4 << 20
MAX_TOTAL_BYTES = 64 << 20
MAX_FILE_DEPTH = 64
MAX_ENTRIES = 200_000  # directory entries visited by the search
FILE_CHUNK_BYTES = 192 << 10  # of content in one frame, before base64

# Displays of one run or cell. The limit of its output does not count them, so that a chart fits in addition to any output.
MAX_DISPLAYS = 100
MAX_DISPLAY_BYTES = 4 << 20  # the line of one display
MAX_DISPLAYS_BYTES = 16 << 20  # all of them
MAX_DISPLAY_TYPES = 16  # MIME types of one display
MAX_MIME_TYPE = 100  # characters of a MIME type
MAX_LEFT_OUT = 16  # MIME types that were left out

MAX_IMPORTS = 32  # modules that a run reports as loaded
MAX_IMPORT = 200  # characters of a module's name

MAX_CALL_ID = 64  # characters of the id of a tool call
MAX_TOOL_NAME = 256
MAX_ARG_BYTES = 4 << 20  # arguments of one tool call, as JSON
MAX_ARG_PARTS = 128 << 10  # commas, colons and opening brackets in them
MAX_ANSWER_BYTES = 16 << 20  # one answer to a tool call, as JSON
MAX_CHECK_BYTES = 4 << 20  # one answer to a check, errors included
MAX_UNREAD_ANSWER_BYTES = 64 << 20  # answers to tool calls that a script has not read
MAX_TOOL_SOURCES = 256  # Python tools of one run
MAX_TOOL_SOURCE_BYTES = 1 << 20  # the source of one of them, in UTF-8

MAX_TEXT_PER_FRAME = 64 << 10  # characters of output
# Each read of output becomes a frame, and a frame costs the host more than the text in it. After FREE_FRAMES small reads the
# broker pauses after each one, so that time bounds the number of frames.
FREE_FRAMES = 1000
SMALL_READ_BYTES = 4096
PACE_SEC = 0.001
JUNK_LINE_BYTES = 100  # charged for a line that is not a frame, in addition to its length: about the size of a frame

MIN_SECRET_CHARS = 4  # characters; a shorter one is not redacted anywhere
GRACE_SEC = 0.3  # from the deadline, whose signal the script can handle, to the kill
COLLECT_SEC = 5.0  # maximum time for the search of the workspace
COLLECT_AFTER_DEADLINE_SEC = 0.3  # the part of that time that may pass after the deadline
MAX_REQUEST_LINE_BYTES = 80 << 20

# Workspaces.
MAX_PAYLOAD_BYTES = 64 << 10  # raw bytes behind one line
INPUT_WINDOW_BYTES = 256 << 10  # of input that an activity has not consumed
FRAMES_WINDOW_BYTES = 1 << 20  # of lines of a run that the host has not acknowledged
MAX_WAITING_BYTES = 64 << 10  # unsent bytes at which reading of output stops, so that control frames do not queue behind more
RESERVED_PIDS = 16  # processes that only the harness may start

# Sessions.
MAX_VALUE_BYTES = 1 << 20  # the line with the value of a cell
MAX_LISTED_NAMES = 400  # variables of a session, or completions of code
MAX_MISSING_ITEMS = 50  # items that a checkpoint lacks, or processes that a rollback ended
MAX_MISSING_ITEM_CHARS = 200  # characters of such an item, and of the name or type of a variable

HIGH_WATER_BYTES = 1 << 20  # unsent bytes at which the broker stops reading from the script
LOW_WATER_BYTES = 256 << 10  # unsent bytes below which it resumes

MAX_WARNINGS = 20  # about files that were not collected
MAX_WARNING = 500  # characters of one

CALL_HEAD_BYTES = 4 << 10  # a tool call's line without its arguments
# Kinds of `error` that a script's process may claim; any other becomes `exception`.
SCRIPT_ERROR_KINDS = ("exception", "exit", "syntax", "setup", "memory", "timeout", "interrupted")
