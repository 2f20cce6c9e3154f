import { nearest } from '../support/index.ts'
import type { Failure } from './failure.ts'

interface Rule {
  /** Looked for in the error, whose words differ between versions of Python. */
  readonly pattern: RegExp
  hint(found: RegExpExecArray, known: readonly string[]): string
}

const MAX_HINTS = 3
const MAX_FIELDS = 30

/**
 * What to do about an error of a script at run time, in words for a model (requirement OR-12). The checker brings its own.
 * @param fields names of what the tools answer with.
 */
export function hintsFor(failure: Pick<Failure, 'error' | 'violations'>, fields: readonly string[]): readonly string[] {
  if (failure.violations.length > 0) return []
  const found = RULES.map((rule) => {
    const match = rule.pattern.exec(failure.error)
    return match === null ? '' : rule.hint(match, fields)
  })
  return [...new Set(found.filter((hint) => hint !== ''))].slice(0, MAX_HINTS)
}

const KEYS_AND_FIELDS: readonly Rule[] = [
  {
    pattern: /^KeyError: (-?\d+)$/,
    hint: ([, key]) =>
      `${key} was used as a key of a dict, which has no such key: a dict is not a list. Go through it with .items() or .values(), or take list(d.values())[${key}]; if it was built by the script, its keys may be strings: d["${key}"].`,
  },
  {
    pattern: /^KeyError: (['"])(.*)\1$/,
    hint: ([, , key = ''], fields) =>
      `the dict has no key ${JSON.stringify(key)}.${closest(key, fields)} Read the fields in the description of the function, use d.get(${JSON.stringify(key)}) where it may be missing, or emit_log(str(list(d))) to see its keys.`,
  },
  {
    pattern: /^KeyError: (?!-?\d+$)(?!['"])(.*)$/,
    hint: ([, key]) => `the dict has no key ${key}: test it with "in", or use d.get(${key}).`,
  },
  {
    pattern: /^AttributeError: the object has no field '(\w+)'/,
    hint: ([, name = ''], fields) =>
      `the answer of the function has no field ${name}.${closest(name, fields)} Use one of those that the error lists.`,
  },
  {
    pattern: /^AttributeError: 'NoneType' object has no attribute '(\w+)'/,
    hint: ([, name]) =>
      `what .${name} was asked of is None: a function or .get() found nothing. Test it with "is None" before it is used.`,
  },
  {
    pattern: /^AttributeError: '(?:dict|Record)' object has no attribute '(\w+)'/,
    hint: ([, name = ''], fields) => `a dict is read by key: d["${name}"], not d.${name}.${closest(name, fields)}`,
  },
  {
    pattern: /^AttributeError: '(list|tuple)' object has no attribute '(items|keys|values|get)'/,
    hint: ([, kind]) =>
      `the value is a ${kind}, not a dict: go through it (for item in value), and take the fields of each item.`,
  },
  {
    pattern: /^AttributeError: '(list|tuple)' object has no attribute '(?!(?:items|keys|values|get)')(\w+)'/,
    hint: ([, kind, name]) =>
      `the value is a ${kind}, not one object: go through it (for item in value) and take .${name} or ["${name}"] of each.`,
  },
  {
    pattern: /^AttributeError: 'str' object has no attribute '(\w+)'/,
    hint: ([, name]) =>
      `the value is text, and has no .${name}: it may be a key of a dict that was gone through (use .items() or .values()), or JSON that json.loads has to read.`,
  },
  {
    pattern: /^AttributeError: '(?!NoneType|dict|Record|list|tuple|str)(\w+)' object has no attribute '(\w+)'/,
    hint: ([, kind, name]) =>
      `a ${kind} has no .${name}; look at what it is, by type() and emit_log, before it is used.`,
  },
  {
    pattern: /^AttributeError: module 'datetime' has no attribute '(now|today|strptime|fromisoformat|utcnow)'/,
    hint: ([, name]) =>
      `it belongs to the class: write datetime.datetime.${name}, or import the class with from datetime import datetime.`,
  },
  {
    pattern: /^AttributeError: (?:partially initialized )?module '(?!datetime')([\w.]+)' has no attribute '(\w+)'/,
    hint: ([, module, name]) => `${module} has no ${name} in this version of Python; use what it documents.`,
  },
  {
    pattern: /^IndexError: /,
    hint: () => 'the list is shorter than that: test its length, or that it is not empty, before an item is taken.',
  },
]

const TYPES: readonly Rule[] = [
  {
    pattern:
      /^TypeError: (?:'NoneType' object (?:is not (?:subscriptable|iterable|a container)|does not support)|argument of type 'NoneType'|cannot unpack non-iterable NoneType)/,
    hint: () =>
      'the value is None: a function returned nothing, or found nothing. Note that list.sort(), list.append() and dict.update() return None; use sorted(...) or the list itself.',
  },
  {
    pattern:
      /^TypeError: '(int|float|bool)' object is not (subscriptable|iterable)|^TypeError: object of type '(int|float|bool)' has no len\(\)|^TypeError: argument of type '(int|float|bool)'|^TypeError: cannot unpack non-iterable (int|float|bool) object/,
    hint: ([, ...kinds]) =>
      `the value is one ${kinds.find((kind) => kind !== undefined)}, not a list and no dict: use it as it is (for a loop over numbers, range(value)).`,
  },
  {
    pattern: /^TypeError: (list|tuple) indices must be integers or slices, not (\w+)/,
    hint: ([, kind, given]) =>
      `a ${kind} was read with a key of type ${given}: it is not one object. Go through it (for item in value), or take its first item with [0].`,
  },
  {
    pattern: /^TypeError: string indices must be integers/,
    hint: () =>
      'text was read like a dict. It may be a key of a dict that was gone through (use .items() or .values()), or JSON that json.loads has to read.',
  },
  {
    pattern: /^TypeError: '(?!NoneType)(\w+)' object is not callable/,
    hint: ([, kind]) =>
      `something of type ${kind} was called like a function: a variable may have the name of a function (rename it), or [ ] was meant.`,
  },
  {
    pattern: /^TypeError: 'NoneType' object is not callable/,
    hint: () => 'what was called is None: a variable may have the name of a function (rename it).',
  },
  {
    pattern: /^TypeError: '(?:function|builtin_function_or_method|method)' object is not (?:subscriptable|iterable)/,
    hint: () => 'the function itself was used in place of its result: call it, with ( ).',
  },
  {
    pattern:
      /^TypeError: (?:'(?:coroutine|_?Future|Task|PendingCall)' object|cannot unpack non-iterable coroutine)|coroutine .* was never awaited/,
    hint: () =>
      'a call inside async code has to be awaited: await f(...). Outside of async code, call it without asyncio.',
  },
  {
    pattern: /^TypeError: (?:object '?(\w+)'? can't be used in 'await' expression|'(\w+)' object can't be awaited)/,
    hint: ([, before, since]) => `the value is a ${before ?? since} already: take the await away.`,
  },
  {
    pattern: /^TypeError: unsupported operand type\(s\) for (.+?): '(\w+)' and '(\w+)'/,
    hint: ([, sign, left, right]) =>
      `${left} ${sign} ${right} is not defined: convert one side first, with int(), float() or str()${left === 'NoneType' || right === 'NoneType' ? ', and leave out what is None' : ''}.`,
  },
  {
    pattern:
      /^TypeError: can only concatenate str|^TypeError: must be str, not|^TypeError: sequence item \d+: expected str instance/,
    hint: () =>
      'text and something else were joined: write an f-string, f"{text}{number}", or use str(number) first (in join: ", ".join(str(x) for x in values)).',
  },
  {
    pattern: /^TypeError: can only concatenate (list|tuple) \(not "(\w+)"\)/,
    hint: ([, kind, other]) =>
      `a ${kind} and a ${other} were joined with +: use append(...), or put it into brackets: [x].`,
  },
  {
    pattern: /^TypeError: '[<>]=?' not supported between instances of '(\w+)' and '(\w+)'/,
    hint: ([, left, right]) =>
      `${left} and ${right} have no order: convert them to one type first, and leave out what is None. To sort or compare dicts, give key=lambda item: item["field"].`,
  },
  {
    pattern:
      /^TypeError: can't compare offset-naive and offset-aware datetimes|^TypeError: can't subtract offset-naive and offset-aware datetimes/,
    hint: () => 'one time has a zone and the other has none: give both one, as in value.replace(tzinfo=timezone.utc).',
  },
  {
    pattern: /^TypeError: ([\w.<>]+)\(\) (missing|got|takes)/,
    hint: ([, name]) => `${name} was called with other arguments than it takes; see its signature.`,
  },
  {
    pattern: /^TypeError: .*unhashable type: '(\w+)'/,
    hint: ([, kind]) => `a ${kind} can be no key of a dict and no item of a set: use a tuple, or one of its fields.`,
  },
  {
    pattern: /^TypeError: unsupported format string passed to (\w+)\.__format__/,
    hint: ([, kind]) =>
      `a ${kind} has no such format: convert it first, as in float(value)${kind === 'NoneType' ? ', and give None a case of its own' : ''}.`,
  },
  {
    pattern: /^TypeError: the JSON object must be str/,
    hint: () =>
      'the value is read already: what functions return is dict, list, text or number, and needs no json.loads.',
  },
  {
    pattern:
      /not JSON serializable|cannot be sent as JSON|the arguments can not be sent|would lose digits in JSON|is not a JSON number|the value contains itself|nested deeper than/,
    hint: () =>
      'only JSON goes through emit_result, emit_intermediate and functions: make it of dict, list, str, int, float, bool and None (dates with .isoformat(), sets with sorted(), Decimal with float()).',
  },
]

const VALUES: readonly Rule[] = [
  {
    pattern: /^(?:ZeroDivisionError|decimal\.DivisionByZero|decimal\.DivisionUndefined)/,
    hint: () => 'test that the divisor is not 0; an average of nothing needs a case of its own.',
  },
  {
    pattern: /^ValueError: invalid literal for int\(\) with base \d+: (.*)$/,
    hint: ([, text]) =>
      `${text} is no whole number: strip signs and spaces first, use float() for decimals, or leave out what is empty.`,
  },
  {
    pattern: /^ValueError: could not convert string to float: (.*)$/,
    hint: ([, text]) =>
      `${text} is no number: strip currency signs, spaces and thousands separators first, or leave it out.`,
  },
  {
    pattern: /^decimal\.InvalidOperation/,
    hint: () => 'the text is no number: strip currency signs, spaces and thousands separators first, or leave it out.',
  },
  {
    pattern: /^ValueError: (?:time data|Invalid isoformat|unconverted data remains|month must be|day is out of range)/,
    hint: () =>
      'the text has another format of date: look at one value with emit_log, and give strptime its real format.',
  },
  {
    pattern: /^ValueError: (?:too many|not enough) values to unpack/,
    hint: () => 'there are more or fewer values than names on the left; going through a dict needs .items().',
  },
  {
    pattern: /^ValueError: (?:min|max)\(\) (?:arg|iterable argument) is (?:an )?empty/,
    hint: () => 'min() and max() of nothing: give default=..., or test that there is something.',
  },
  {
    pattern: /^statistics\.StatisticsError: /,
    hint: () =>
      'there is not enough data for that: test that the list is not empty (for stdev, that it has two values).',
  },
  {
    pattern: /^ValueError: .*is not in list/,
    hint: () => 'index() and remove() need the value to be there: test it with "in" first.',
  },
  {
    pattern: /^(?:json\.decoder\.)?JSONDecodeError/,
    hint: () => 'the text is no JSON: what functions return is read already, and needs no json.loads.',
  },
  {
    pattern: /^(?:NameError|UnboundLocalError): .*?'(\w+)'/,
    hint: ([, name]) =>
      `${name} has no value there: nothing of an earlier script is left, and every branch has to set it before it is used.`,
  },
  {
    pattern: /^RuntimeError: (?:dictionary|Set|OrderedDict).* (?:changed|mutated) .*during iteration/i,
    hint: () => 'it was changed while it was gone through: go through a copy, list(d).',
  },
  {
    pattern: /^RuntimeError: (?:asyncio\.run\(\) cannot be called|This event loop is already running)/,
    hint: () => 'async code runs already: write await in place of asyncio.run(...).',
  },
  {
    pattern: /^StopIteration/,
    hint: () => 'next() found nothing: give it a default, next((x for x in values if ...), None).',
  },
  { pattern: /^RecursionError/, hint: () => 'the recursion does not end, or is too deep: use a loop.' },
]

const SURROUNDINGS: readonly Rule[] = [
  {
    pattern: /^ModuleNotFoundError: No module named '([\w.]+)'/,
    hint: ([, name]) =>
      `${name} is not installed here, and nothing can be: use the standard library and the functions above.`,
  },
  {
    pattern: /^ImportError: cannot import name '(\w+)' from '([\w.]+)'/,
    hint: ([, name, module]) => `${module} has no ${name}: use what it documents, or write it yourself.`,
  },
  {
    pattern: /^(?:FileNotFoundError|NotADirectoryError|IsADirectoryError)/,
    hint: () =>
      'there is no such file in the sandbox: data comes from the functions and variables above, not from files.',
  },
  {
    pattern:
      /^(?:PermissionError|OSError|Connection\w*Error|TimeoutError|BlockingIOError|socket\.gaierror|urllib\.error\.URLError|ssl\.)/,
    hint: () => 'the sandbox has no network and no files of the host: use the functions above for everything outside.',
  },
  {
    pattern: /^ToolError: /,
    hint: () =>
      'a function failed and said why: change the call accordingly, or catch ToolError (e.code, str(e)) where the script can do without it.',
  },
  {
    pattern: /^SystemExit\b.*\(the script called sys\.exit\)/,
    hint: () => 'do not call exit(): let the script come to its end, with emit_result(data).',
  },
  {
    pattern: /^Script timed out/,
    hint: () =>
      'it took too long: call functions less often (fetch once, keep what came in a dict), make independent calls with asyncio.gather, and look for a loop that does not end.',
  },
  {
    pattern: /^MemoryError|\bmemory limit\b|\bout of memory\b|more memory than/i,
    hint: () => 'it needs too much memory: work in pieces, and keep only what the answer needs.',
  },
  {
    pattern: /^the output went over the limit|\boutput limit\b/i,
    hint: () => 'it sends too much: emit a summary, and print less.',
  },
  {
    pattern: /^script finished without calling emit_result/,
    hint: () => 'call emit_result(data) once, on every way through the script, with the whole answer.',
  },
  {
    pattern: /^the result does not match `output`: (?:result\.?([^:]*): )?/,
    hint: ([, path = '']) =>
      `hand emit_result a value of exactly the asked shape${path === '' ? '' : `; look at ${path}`}. Convert numbers and dates first.`,
  },
]

const RULES: readonly Rule[] = [...KEYS_AND_FIELDS, ...TYPES, ...VALUES, ...SURROUNDINGS]

function closest(key: string, fields: readonly string[]): string {
  const near = nearest(key, fields)
  if (near !== undefined && near !== key) return ` Did you mean ${JSON.stringify(near)}?`
  if (fields.length === 0 || fields.includes(key)) return ''
  return ` Fields that the functions answer with: ${fields.slice(0, MAX_FIELDS).join(', ')}.`
}
