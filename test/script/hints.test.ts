import { describe, expect, test } from 'vitest'
import { feedbackOn } from '../../src/script/feedback.ts'
import { hintsFor } from '../../src/script/hints.ts'

/** What CPython says, in the words of 3.10 to 3.13, and words that its hint must hold. */
const ERRORS: readonly (readonly [string, string, readonly string[]])[] = [
  ['a key that is missing', "KeyError: 'nmae'", ['"nmae"', 'Did you mean "name"?', 'd.get("nmae")']],
  ['a key with a quote in it', 'KeyError: "it\'s"', ['"it\'s"', '.get(']],
  ['an integer as the key of a dict', 'KeyError: 0', ['a dict is not a list', '.values()', 'd["0"]']],
  ['a key that is a tuple', "KeyError: ('a', 1)", ["d.get(('a', 1))"]],
  ['a field of an answer', "AttributeError: the object has no field 'totl'; it has id, total", ['"total"']],
  ['an attribute of a dict', "AttributeError: 'dict' object has no attribute 'name'", ['d["name"]', 'not d.name']],
  ['an attribute of an answer', "AttributeError: 'Record' object has no attribute 'name'", ['d["name"]']],
  ['an attribute of None', "AttributeError: 'NoneType' object has no attribute 'group'", ['"is None"', '.group']],
  ['a list used as a dict', "AttributeError: 'list' object has no attribute 'items'", ['not a dict', 'for item in']],
  ['a list used as one object', "AttributeError: 'list' object has no attribute 'name'", ['for item in', '["name"]']],
  ['text used as a dict', "AttributeError: 'str' object has no attribute 'items'", ['json.loads', '.values()']],
  ['an attribute of a number', "AttributeError: 'int' object has no attribute 'name'", ['a int has no .name']],
  ['datetime.now', "AttributeError: module 'datetime' has no attribute 'now'", ['datetime.datetime.now']],
  [
    'a function of no module',
    "AttributeError: module 'math' has no attribute 'squareroot'",
    ['math has no squareroot'],
  ],
  ['None read by key', "TypeError: 'NoneType' object is not subscriptable", ['None', 'list.sort()']],
  ['None looped over', "TypeError: 'NoneType' object is not iterable", ['None', 'sorted(']],
  ['None searched in', "TypeError: argument of type 'NoneType' is not iterable", ['None']],
  ['None unpacked', 'TypeError: cannot unpack non-iterable NoneType object', ['None']],
  ['None written to', "TypeError: 'NoneType' object does not support item assignment", ['None']],
  ['a number read by key', "TypeError: 'int' object is not subscriptable", ['one int', 'as it is']],
  ['a number looped over', "TypeError: 'float' object is not iterable", ['one float']],
  ['the length of a number', "TypeError: object of type 'int' has no len()", ['one int']],
  ['a list read by name', 'TypeError: list indices must be integers or slices, not str', ['for item in', '[0]']],
  ['a tuple read by name', 'TypeError: tuple indices must be integers or slices, not str', ['a tuple', '[0]']],
  ['text read by name (3.10)', 'TypeError: string indices must be integers', ['json.loads']],
  ['text read by name (3.11)', "TypeError: string indices must be integers, not 'str'", ['json.loads']],
  ['a list that is called', "TypeError: 'list' object is not callable", ['rename it']],
  ['None that is called', "TypeError: 'NoneType' object is not callable", ['rename it']],
  ['a function read by key', "TypeError: 'function' object is not subscriptable", ['call it']],
  ['a coroutine read by key', "TypeError: 'coroutine' object is not subscriptable", ['await f(']],
  ['a value awaited', "TypeError: object int can't be used in 'await' expression", ['take the await away']],
  ['a value awaited (3.14)', "TypeError: 'int' object can't be awaited", ['take the await away']],
  ['number + text', "TypeError: unsupported operand type(s) for +: 'int' and 'str'", ['int + str', 'float()']],
  ['number + None', "TypeError: unsupported operand type(s) for +=: 'int' and 'NoneType'", ['leave out what is None']],
  ['text + number', 'TypeError: can only concatenate str (not "int") to str', ['f-string', 'str(number)']],
  ['join of numbers', 'TypeError: sequence item 0: expected str instance, int found', ['", ".join(str(x)']],
  ['list + text', 'TypeError: can only concatenate list (not "str") to list', ['append(', '[x]']],
  [
    'order of None',
    "TypeError: '<' not supported between instances of 'NoneType' and 'int'",
    ['leave out what is None'],
  ],
  ['order of dicts', "TypeError: '<' not supported between instances of 'dict' and 'dict'", ['key=lambda']],
  ['two kinds of time', "TypeError: can't compare offset-naive and offset-aware datetimes", ['timezone.utc']],
  ['a wrong argument', "TypeError: f() got an unexpected keyword argument 'id'", ['f was called', 'signature']],
  ['a missing argument', "TypeError: Box.f() missing 1 required positional argument: 'x'", ['Box.f was called']],
  ['a dict in a set', "TypeError: unhashable type: 'dict'", ['tuple']],
  ['a dict in a set (3.14)', "TypeError: cannot use 'dict' as a set element (unhashable type: 'dict')", ['tuple']],
  ['a format of None', 'TypeError: unsupported format string passed to NoneType.__format__', ['float(value)', 'None']],
  ['json.loads of a dict', 'TypeError: the JSON object must be str, bytes or bytearray, not dict', ['no json.loads']],
  ['json.dumps of a date', 'TypeError: Object of type date is not JSON serializable', ['.isoformat()']],
  ['an index too large', 'IndexError: list index out of range', ['length', 'empty']],
  ['pop of nothing', 'IndexError: pop from empty list', ['empty']],
  ['division by zero', 'ZeroDivisionError: division by zero', ['divisor']],
  ['no integer', "ValueError: invalid literal for int() with base 10: '1,5'", ["'1,5'", 'float()']],
  ['no number', "ValueError: could not convert string to float: '1 EUR'", ["'1 EUR'", 'currency']],
  ['no decimal', "decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]", ['no number']],
  ['a date in another format', "ValueError: time data '1.2.' does not match format '%Y'", ['format of date']],
  ['no ISO date', "ValueError: Invalid isoformat string: 'x'", ['format of date']],
  ['too many values', 'ValueError: too many values to unpack (expected 2)', ['.items()']],
  ['too few values', 'ValueError: not enough values to unpack (expected 2, got 1)', ['.items()']],
  ['max of nothing (3.10)', 'ValueError: max() arg is an empty sequence', ['default=']],
  ['max of nothing (3.12)', 'ValueError: max() iterable argument is empty', ['default=']],
  ['mean of nothing', 'statistics.StatisticsError: mean requires at least one data point', ['not empty']],
  ['no such item', 'ValueError: 3 is not in list', ['"in"']],
  ['no JSON', 'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)', ['no json.loads']],
  ['no such name', "NameError: name 'orders' is not defined", ['orders has no value']],
  ['set later (3.10)', "UnboundLocalError: local variable 'x' referenced before assignment", ['x has no value']],
  [
    'set later (3.11)',
    "UnboundLocalError: cannot access local variable 'x' where it is not associated with a value",
    ['x has no value'],
  ],
  ['a dict that changes', 'RuntimeError: dictionary changed size during iteration', ['list(d)']],
  ['a loop in a loop', 'RuntimeError: asyncio.run() cannot be called from a running event loop', ['await']],
  ['next of nothing', 'StopIteration', ['None)']],
  ['too deep', 'RecursionError: maximum recursion depth exceeded', ['loop']],
  ['a module that is missing', "ModuleNotFoundError: No module named 'pandas'", ['pandas', 'standard library']],
  ['a name that is missing', "ImportError: cannot import name 'x' from 'math' (unknown location)", ['math has no x']],
  ['a file that is missing', "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'", ['not from files']],
  ['no network', 'socket.gaierror: [Errno -2] Name or service not known', ['no network']],
  ['an address that answers nothing', 'OSError: [Errno 101] Network is unreachable', ['no network']],
  ['a tool that failed', 'ToolError: no order 7', ['catch ToolError', 'e.code']],
  ['sys.exit', 'SystemExit: 1 (the script called sys.exit)', ['emit_result(data)']],
  ['a timeout', 'Script timed out after 2s', ['asyncio.gather', 'loop that does not end']],
  ['no memory', 'MemoryError', ['in pieces']],
  ['killed for memory', 'out of memory, the limit is 1000 bytes', ['in pieces']],
  ['too much output', 'the output went over the limit of 1000 bytes', ['summary']],
  ['no result', 'script finished without calling emit_result()', ['emit_result(data) once']],
  [
    'a result of another shape',
    'the result does not match `output`: result.total: Invalid input: expected number, received string',
    ['exactly the asked shape', 'look at total'],
  ],
  [
    'a value that is no JSON',
    'sandglass_harness.convert.ConversionError: $: a value of type set cannot be sent as JSON; convert it first',
    ['sorted()', '.isoformat()'],
  ],
]
const FIELDS = ['id', 'name', 'total']

describe('hints on errors at run time (OR-12)', () => {
  test.each(ERRORS)('%s', (_, error, words) => {
    const hints = hintsFor({ error, violations: [] }, FIELDS)
    expect(hints).toHaveLength(1)
    for (const word of words) expect(hints[0]).toContain(word)
  })

  test('an error that nothing is known for has no hint', () => {
    for (const error of ['AssertionError', 'Oops: memory of a friend', 'KeyError']) {
      expect(hintsFor({ error, violations: [] }, FIELDS)).toEqual([])
    }
  })

  test('fields of the tools are listed where none is close, and the known one is not proposed to itself', () => {
    expect(hintsFor({ error: "KeyError: 'zzzzzzzz'", violations: [] }, FIELDS)[0]).toContain(
      'Fields that the functions answer with: id, name, total.',
    )
    expect(hintsFor({ error: "KeyError: 'name'", violations: [] }, FIELDS)[0]).not.toContain('Did you mean')
    expect(hintsFor({ error: "KeyError: 'x'", violations: [] }, [])[0]).not.toContain('Fields')
  })

  test('an error of several lines is looked at in its first', () => {
    expect(hintsFor({ error: "ValueError: bad\nKeyError: 'x'", violations: [] }, FIELDS)).toEqual([])
  })

  test('violations bring their own hints', () => {
    const violations = [{ code: 'unknown_name', line: 1, column: 0, message: "'x' is not defined", hint: 'Assign x.' }]
    expect(hintsFor({ error: "NameError: name 'x' is not defined", violations }, [])).toEqual([])
    const told = feedbackOn({
      script: 'x',
      error: '',
      traceback: null,
      violations,
      stdout: '',
      stderr: '',
      failedCalls: [],
      writes: [],
      repetition: null,
    })
    expect(told).toContain("- line 1: 'x' is not defined (unknown_name)\n  | x\n  | ^\n  Hint: Assign x.")
  })
})
