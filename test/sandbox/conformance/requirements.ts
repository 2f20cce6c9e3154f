/**
 * The cases of the conformance suite that show a requirement, by their titles. The suite is published, so its titles do
 * not cite the ids themselves.
 */
export const SHOWN_BY: Readonly<Record<string, readonly string[]>> = {
  'HA-01': [
    'is ready once, after its tools are loaded, and says which protocol and Python',
    'serves requests until its input ends, then ends itself',
  ],
  'HA-02': [
    'a result, then script_done',
    'intermediates and logs in order, with the level info by default',
    'a Python tool is a global of the script that brought it, an async one too, in a module of its own',
  ],
  'HA-03': [
    'functions of the tools directory are globals, async ones too; a broken file stops no other',
    'a tool file that has to be loaded in each run, and fails in one, is an error that names it',
  ],
  'HA-04': [
    'a Python tool is a global of the script that brought it, an async one too, in a module of its own',
    'functions of the tools directory are globals, async ones too; a broken file stops no other',
  ],
  'HA-05': ['globals are fresh', 'patched modules, the environment and the current directory are as before'],
  'HA-06': [
    'a timeout with the traceback of where it was',
    'time in which the host executes a tool is not the time of the script',
    'a slow tool buys no time for a loop beside a coroutine',
    'a loop inside C is killed within a second of the deadline, with the same message',
    'a script that takes the alarm away is killed within a second of the deadline, with the same message',
    'a script that catches everything is killed within a second of the deadline, with the same message',
    'a script that stops itself is killed within a second of the deadline, with the same message',
  ],
  'HA-07': [
    'an exception with its message and the traceback of the script’s own lines',
    'a syntax error, and nothing of the script ran',
    'sys.exit is an error event, and the harness serves the next run',
  ],
  'HA-08': [
    'missing secrets are listed, exactly, and nothing runs',
    'secrets are in the environment of their own run alone',
  ],
  'HA-09': [
    'a result, then script_done',
    'nothing but script_done for a script that says nothing',
    'an exception with its message and the traceback of the script’s own lines',
  ],
  'HA-10': [
    'what a script prints is text, even if it looks like a frame',
    'what a script writes to every descriptor that it has forges and breaks nothing',
    'threads that emit at the same time do not mix their events',
    'forked processes that emit at the same time do not mix their events',
  ],
  'HA-11': [
    'an unprivileged user without capabilities that can gain no privileges',
    'writable are the workspace, /tmp, /var/tmp and /dev/shm, and nothing else',
  ],
  'HA-12': ['is ready once, after its tools are loaded, and says which protocol and Python'],
  'HA-13': [
    'values that JSON lacks are converted by the documented rules',
    'NaN arrives as null, and the frame tells where it was',
    'Infinity is an error that names path and type, never JSON that differs in silence',
    '2**53 is an error that names path and type, never JSON that differs in silence',
    'an object is an error that names path and type, never JSON that differs in silence',
    'a function is an error that names path and type, never JSON that differs in silence',
  ],
  'OR-06': [
    'a tool call names the line of the script that made it, also through a helper',
    'a tool call of a thread names its line if a line of the script made it',
  ],
  'OR-12': [
    'imports and helpers of a preamble are globals of the script',
    'a traceback has the script’s own line numbers, also with wrapper code',
    'an error in a preamble or a postamble names it, with the line',
    'a postamble runs after a script that ended without an error, and only then',
    'wrapper code leaves nothing for the next run',
    'a check knows the names of a star import, and reports a preamble that is not Python',
  ],
  'PO-02': ['files of a run are gone, wherever it could write', 'processes of a run are gone, daemons too'],
}
