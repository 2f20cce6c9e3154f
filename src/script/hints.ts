import { nearest } from '../support/index.ts'

interface Rule {
  /**
   * Matches the error, whose wording differs between versions of Python. A script chooses the text, so matching must take linear
   * time: at most one part of a pattern can match text of any length.
   */
  readonly pattern: RegExp
  hint(found: RegExpExecArray, known: readonly string[], files: string): string
}

/** The parts of a failure that hints depend on. */
interface FailedScript {
  readonly error: string
  readonly traceback: string | null
  readonly violations: readonly unknown[]
}

const MAX_HINTS = 3
/** Characters of an error that the rules examine: Python's own messages are shorter. */
const MAX_EXAMINED = 2000
const MAX_FIELDS = 30

/**
 * Returns hints for a model on how to fix an error at run time. Violations have hints of their own.
 * @param fields field names in the results of the tools.
 * @param files the existing files, as a sentence; empty if there are none.
 */
export function hintsFor(failure: FailedScript, fields: readonly string[], files: string = ''): readonly string[] {
  if (failure.violations.length > 0) return []
  const error = failure.error.slice(0, MAX_EXAMINED)
  const tool = findFailedTool(failure.traceback)
  // Most rules only help with code that the model can change.
  const found = (tool === undefined ? HINT_RULES : LIMITS).map((rule) => {
    const match = rule.pattern.exec(error)
    return match === null ? '' : rule.hint(match, fields, files)
  })
  const hints = [...new Set(found.filter((hint) => hint !== ''))]
  return tool !== undefined && hints.length === 0 ? [hintOnTool(tool)] : hints.slice(0, MAX_HINTS)
}

/** Frames of code that the caller gave to a run; frames of libraries are ignored. Every engine mounts `toolsDir` at /tools. */
const FRAME = /^ *File "(?:<(?:script|preamble|postamble)>|<tool ([^>"]+)>|\/tools\/([^"]+))", line/gm

/** Finds the Python tool, or the file of tools, that raised the error. */
function findFailedTool(traceback: string | null): string | undefined {
  const text = traceback ?? ''
  const last = text.slice(Math.max(0, text.lastIndexOf('Traceback (most recent call last)')))
  const [, tool, file] = [...last.matchAll(FRAME)].at(-1) ?? []
  if (tool !== undefined) return `the function ${tool}`
  return file === undefined ? undefined : `a function of ${file}`
}

function hintOnTool(place: string): string {
  return `the error is inside ${place}, which the script cannot change. Check the arguments of the call, or catch the exception if the script can continue without the result.`
}

const KEYS_AND_FIELDS: readonly Rule[] = [
  {
    pattern: /^KeyError: (-?\d+)$/,
    hint: ([, key]) =>
      `the dict has no key ${key}; a dict is not a list. Iterate with .items() or .values(), or take list(d.values())[${key}]. If the script built the dict, its keys may be strings: d["${key}"].`,
  },
  {
    pattern: /^KeyError: (['"])(.*)\1$/,
    hint: ([, , key = ''], fields) =>
      `the dict has no key ${JSON.stringify(key)}.${findClosest(key, fields)} Read the fields in the description of the function, use d.get(${JSON.stringify(key)}) if the key may be missing, or call emit_log(str(list(d))) to see the keys.`,
  },
  {
    pattern: /^KeyError: (?!-?\d+$)(?!['"])(.*)$/,
    hint: ([, key]) => `the dict has no key ${key}: test for it with "in", or use d.get(${key}).`,
  },
  {
    pattern: /^AttributeError: the object has no field '(\w+)'/,
    hint: ([, name = ''], fields) =>
      `the result of the function has no field ${name}.${findClosest(name, fields)} Use one of the fields that the error lists.`,
  },
  {
    pattern: /^AttributeError: 'NoneType' object has no attribute '(\w+)'/,
    hint: ([, name]) =>
      `the value before .${name} is None: a function or .get() found nothing. Test it with "is None" before you use it.`,
  },
  {
    pattern: /^AttributeError: '(?:dict|Record)' object has no attribute '(\w+)'/,
    hint: ([, name = ''], fields) => `read a dict by key: d["${name}"], not d.${name}.${findClosest(name, fields)}`,
  },
  {
    pattern: /^AttributeError: '(list|tuple)' object has no attribute '(items|keys|values|get)'/,
    hint: ([, kind]) =>
      `the value is a ${kind}, not a dict: iterate over it (for item in value) and read the fields of each item.`,
  },
  {
    pattern: /^AttributeError: '(list|tuple)' object has no attribute '(?!(?:items|keys|values|get)')(\w+)'/,
    hint: ([, kind, name]) =>
      `the value is a ${kind}, not one object: iterate over it (for item in value) and read .${name} or ["${name}"] of each item.`,
  },
  {
    pattern: /^AttributeError: 'str' object has no attribute '(\w+)'/,
    hint: ([, name]) =>
      `the value is a string and has no .${name}. It may be a key of a dict that you iterate over (use .items() or .values()), or JSON text (use json.loads).`,
  },
  {
    pattern: /^AttributeError: '(?!NoneType|dict|Record|list|tuple|str)(\w+)' object has no attribute '(\w+)'/,
    hint: ([, kind, name]) =>
      `a ${kind} has no .${name}. Inspect the value with emit_log(str(type(value))) before you use it.`,
  },
  {
    pattern: /^AttributeError: module 'datetime' has no attribute '(now|today|strptime|fromisoformat|utcnow)'/,
    hint: ([, name]) =>
      `${name} belongs to the class: write datetime.datetime.${name}, or import the class with "from datetime import datetime".`,
  },
  {
    pattern: /^AttributeError: (?:partially initialized )?module '(?!datetime')([\w.]+)' has no attribute '(\w+)'/,
    hint: ([, module, name]) => `${module} has no ${name} in this version of Python; use a documented name.`,
  },
  {
    pattern: /^IndexError: /,
    hint: () => 'the list is empty or shorter than the index: test its length before you take an item.',
  },
]

const TYPES: readonly Rule[] = [
  {
    pattern:
      /^TypeError: (?:'NoneType' object (?:is not (?:subscriptable|iterable|a container)|does not support)|argument of type 'NoneType'|cannot unpack non-iterable NoneType)/,
    hint: () =>
      'the value is None: a function returned or found nothing. list.sort(), list.append() and dict.update() return None; use sorted(...) or the list itself.',
  },
  {
    pattern:
      /^TypeError: '(int|float|bool)' object is not (subscriptable|iterable)|^TypeError: object of type '(int|float|bool)' has no len\(\)|^TypeError: argument of type '(int|float|bool)'|^TypeError: cannot unpack non-iterable (int|float|bool) object/,
    hint: ([, ...kinds]) =>
      `the value is one ${kinds.find((kind) => kind !== undefined)}, not a list or a dict: use it directly. To loop over numbers, use range(value).`,
  },
  {
    pattern: /^TypeError: (list|tuple) indices must be integers or slices, not (\w+)/,
    hint: ([, kind, given]) =>
      `a ${kind} cannot be read with a key of type ${given}: it is not one object. Iterate over it (for item in value), or take the first item with [0].`,
  },
  {
    pattern: /^TypeError: string indices must be integers/,
    hint: () =>
      'the value is a string, not a dict. It may be a key of a dict that you iterate over (use .items() or .values()), or JSON text (use json.loads).',
  },
  {
    pattern: /^TypeError: '(?!NoneType)(\w+)' object is not callable/,
    hint: ([, kind]) =>
      `a value of type ${kind} was called like a function. A variable may have the name of a function (rename it), or you may need [ ].`,
  },
  {
    pattern: /^TypeError: 'NoneType' object is not callable/,
    hint: () => 'the value that was called is None. A variable may have the name of a function (rename it).',
  },
  {
    pattern: /^TypeError: '(?:function|builtin_function_or_method|method)' object is not (?:subscriptable|iterable)/,
    hint: () => 'the function itself was used instead of its result: call it with ( ).',
  },
  {
    pattern:
      /^TypeError: (?:'(?:coroutine|_?Future|Task|PendingCall)' object|cannot unpack non-iterable coroutine)|coroutine '[^']*' was never awaited/,
    hint: () => 'await a call inside async code: await f(...). Outside of async code, call it without asyncio.',
  },
  {
    pattern: /^TypeError: (?:object '?(\w+)'? can't be used in 'await' expression|'(\w+)' object can't be awaited)/,
    hint: ([, before, since]) => `the value is already of type ${before ?? since}: remove the await.`,
  },
  {
    pattern: /^TypeError: unsupported operand type\(s\) for ([^:]+): '(\w+)' and '(\w+)'/,
    hint: ([, sign, left, right]) =>
      `${left} ${sign} ${right} is not defined: convert one side first, with int(), float() or str()${left === 'NoneType' || right === 'NoneType' ? ', and leave out None' : ''}.`,
  },
  {
    pattern:
      /^TypeError: can only concatenate str|^TypeError: must be str, not|^TypeError: sequence item \d+: expected str instance/,
    hint: () =>
      'only strings can be joined to a string: use an f-string, f"{text}{number}", or str(number) (in join: ", ".join(str(x) for x in values)).',
  },
  {
    pattern: /^TypeError: can only concatenate (list|tuple) \(not "(\w+)"\)/,
    hint: ([, kind, other]) =>
      `a ${kind} and a ${other} cannot be joined with +: use append(...), or put the value in brackets: [x].`,
  },
  {
    pattern: /^TypeError: '[<>]=?' not supported between instances of '(\w+)' and '(\w+)'/,
    hint: ([, left, right]) =>
      `${left} and ${right} cannot be ordered: convert them to one type first, and leave out None. To sort dicts, pass key=lambda item: item["field"].`,
  },
  {
    pattern:
      /^TypeError: can't compare offset-naive and offset-aware datetimes|^TypeError: can't subtract offset-naive and offset-aware datetimes/,
    hint: () =>
      'one time has a time zone and the other has none: give both one, as in value.replace(tzinfo=timezone.utc).',
  },
  {
    pattern: /^TypeError: ([\w.<>]+)\(\) (missing|got|takes)/,
    hint: ([, name]) => `the arguments of ${name} do not match its signature.`,
  },
  {
    pattern: /^TypeError: (?:cannot use '[^']*' as a [a-z ]+\()?unhashable type: '([\w.]+)'/,
    hint: ([, kind]) => `a ${kind} cannot be a key of a dict or an item of a set: use a tuple, or one of its fields.`,
  },
  {
    pattern: /^TypeError: unsupported format string passed to (\w+)\.__format__/,
    hint: ([, kind]) =>
      `a ${kind} does not support this format: convert it first, as in float(value)${kind === 'NoneType' ? ', and handle None separately' : ''}.`,
  },
  {
    pattern: /^TypeError: the JSON object must be str/,
    hint: () => 'the value is already parsed: functions return dict, list, str or numbers. Do not call json.loads.',
  },
  {
    pattern:
      /not JSON serializable|cannot be sent as JSON|the arguments cannot be sent|would lose digits in JSON|is not a JSON number|the value contains itself|nested deeper than/,
    hint: () =>
      'emit_result, emit_intermediate and functions take JSON only: dict, list, str, int, float, bool and None. Convert dates with .isoformat(), sets with sorted(), Decimal with float().',
  },
]

const VALUES: readonly Rule[] = [
  {
    pattern: /^(?:ZeroDivisionError|decimal\.DivisionByZero|decimal\.DivisionUndefined)/,
    hint: () => 'test that the divisor is not 0; handle the average of an empty list separately.',
  },
  {
    pattern: /^ValueError: invalid literal for int\(\) with base \d+: (.*)$/,
    hint: ([, text]) =>
      `${text} is not a whole number: strip symbols and spaces first, use float() for decimals, or leave out empty values.`,
  },
  {
    pattern: /^ValueError: could not convert string to float: (.*)$/,
    hint: ([, text]) =>
      `${text} is not a number: strip currency signs, spaces and thousands separators first, or leave it out.`,
  },
  {
    pattern: /^decimal\.InvalidOperation/,
    hint: () =>
      'the text is not a number: strip currency signs, spaces and thousands separators first, or leave it out.',
  },
  {
    pattern: /^ValueError: (?:time data|Invalid isoformat|unconverted data remains|month must be|day is out of range)/,
    hint: () =>
      'the date has a different format: look at one value with emit_log, and pass its real format to strptime.',
  },
  {
    pattern: /^ValueError: (?:too many|not enough) values to unpack/,
    hint: () =>
      'the number of values differs from the number of names on the left. To iterate over keys and values of a dict, use .items().',
  },
  {
    pattern: /^ValueError: (?:min|max)\(\) (?:arg|iterable argument) is (?:an )?empty/,
    hint: () => 'min() and max() need at least one value: pass default=..., or test that the list is not empty.',
  },
  {
    pattern: /^statistics\.StatisticsError: /,
    hint: () =>
      'there is not enough data: test that the list is not empty (for stdev, that it has at least two values).',
  },
  {
    pattern: /^ValueError: .*is not in list/,
    hint: () => 'index() and remove() fail if the value is missing: test for it with "in" first.',
  },
  {
    pattern: /^(?:json\.decoder\.)?JSONDecodeError/,
    hint: () => 'the text is not JSON. Results of functions are already parsed: do not call json.loads on them.',
  },
  {
    pattern: /^(?:NameError|UnboundLocalError): [^']*'(\w+)'/,
    hint: ([, name]) =>
      `${name} has no value at this line: nothing of an earlier script remains, and every branch must set it before it is used.`,
  },
  {
    pattern:
      /^RuntimeError: (?:dictionary|set|OrderedDict|deque) (?:keys )?(?:changed|mutated) (?:size )?during iteration/i,
    hint: () => 'it changed during the iteration: iterate over a copy, list(d).',
  },
  {
    pattern: /^RuntimeError: (?:asyncio\.run\(\) cannot be called|This event loop is already running)/,
    hint: () => 'async code is already running: write await instead of asyncio.run(...).',
  },
  {
    pattern: /^StopIteration/,
    hint: () => 'next() found nothing: pass a default, next((x for x in values if ...), None).',
  },
  { pattern: /^RecursionError/, hint: () => 'the recursion does not end, or is too deep: use a loop.' },
]

const SURROUNDINGS: readonly Rule[] = [
  {
    pattern: /^ModuleNotFoundError: No module named '([\w.]+)'/,
    hint: ([, name]) =>
      `${name} is not installed: use the standard library, and the packages and functions named above.`,
  },
  {
    pattern: /^ImportError: cannot import name '(\w+)' from '([\w.]+)'/,
    hint: ([, name, module]) => `${module} has no ${name}: use a documented name, or write the function yourself.`,
  },
  {
    pattern: /^(?:FileNotFoundError|NotADirectoryError|IsADirectoryError)/,
    hint: (_, __, files) =>
      files === ''
        ? 'the sandbox has no such file: take data from the functions and variables above, not from files.'
        : `there is no such file or directory. ${files}`,
  },
  {
    pattern:
      /^(?:PermissionError|OSError|Connection\w*Error|TimeoutError|BlockingIOError|socket\.gaierror|urllib\.error\.URLError|ssl\.)/,
    hint: () =>
      'the sandbox has no network and no files of the host: use the functions above for everything outside it.',
  },
  {
    pattern: /^ToolError: /,
    hint: () =>
      'a function failed; its message says why. Change the call, or catch ToolError (e.code, str(e)) if the script can continue without the result.',
  },
  {
    pattern: /^SystemExit\b.*\(the script called sys\.exit\)/,
    hint: () => 'do not call exit(): let the script run to its end and call emit_result(data).',
  },
]

const LIMITS: readonly Rule[] = [
  {
    pattern: /^Script timed out/,
    hint: () =>
      'the script took too long: call functions less often (fetch once, keep the results in a dict), make independent calls with asyncio.gather, and look for an endless loop.',
  },
  {
    pattern: /^MemoryError|\bmemory limit\b|\bout of memory\b|more memory than/i,
    hint: () => 'the script needs too much memory: process the data in parts, and keep only what the answer needs.',
  },
  {
    pattern: /^the output went over the limit|\boutput limit\b/i,
    hint: () => 'the script sends too much: emit a summary, and print less.',
  },
]

const MACHINERY: readonly Rule[] = [
  {
    // A rule of LIMITS has the hint on memory.
    pattern: /^Container stdout closed unexpectedly(?!: out of memory)/,
    hint: () =>
      'the sandbox was lost, and the script need not be the cause. If the script ends no processes, answer with the same script again, without the calls that already took effect.',
  },
]

const RESULTS: readonly Rule[] = [
  {
    pattern: /^script finished without calling emit_result/,
    hint: () => 'call emit_result(data) once on every path through the script, with the whole answer.',
  },
  {
    pattern: /^the result does not match `output`: (?:result\.?([^:]*): )?/,
    hint: ([, path = '']) =>
      `pass emit_result a value of exactly the required shape${path === '' ? '' : `; look at ${path}`}. Convert numbers and dates first.`,
  },
]

/** All rules, in the order of the hints. */
export const HINT_RULES: readonly Rule[] = [
  ...KEYS_AND_FIELDS,
  ...TYPES,
  ...VALUES,
  ...SURROUNDINGS,
  ...LIMITS,
  ...MACHINERY,
  ...RESULTS,
]

function findClosest(key: string, fields: readonly string[]): string {
  const near = nearest(key, fields)
  if (near !== undefined && near !== key) return ` Did you mean ${JSON.stringify(near)}?`
  if (fields.length === 0 || fields.includes(key)) return ''
  return ` Fields in the results of the functions: ${fields.slice(0, MAX_FIELDS).join(', ')}.`
}
