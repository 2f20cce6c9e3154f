/** Longest name of a tool; the APIs of models have the same bound. */
const MAX_NAME = 64

/**
 * The name that a script calls a tool by: its own where that is a plain Python identifier, else one made from it
 * (`get-user` → `get_user`, `class` → `class_`, `1st` → `_1st`).
 * @throws TypeError for a name that nothing can be made from, that is too long, or that is taken: by a helper, a
 * builtin of Python, or Python itself (`__import__`).
 */
export function toolName(given: string): string {
  const shown = JSON.stringify(given.slice(0, MAX_NAME + 1))
  if (given === '') throw new TypeError('a tool has an empty name')
  if (given.length > MAX_NAME) {
    throw new TypeError(`the tool name ${shown}… has ${given.length} characters; at most ${MAX_NAME} are allowed`)
  }
  // Python itself reads names in this form, so two that differ only here are one name to it.
  const normal = given.normalize('NFKC')
  // Letters of other alphabets that look like Latin ones would make two tools look like one.
  const strange = /[^\0-\x7F]/u.exec(normal)?.[0]
  if (strange !== undefined) {
    throw new TypeError(`the tool name ${shown} holds ${JSON.stringify(strange)}: use ASCII letters, digits and _`)
  }
  if (!/[A-Za-z0-9]/.test(normal)) throw new TypeError(`the tool name ${shown} has no letter and no digit`)
  if (/^__.*__$/.test(normal)) throw new TypeError(`the tool name ${shown} belongs to Python itself`)
  const taken = HELPERS.has(normal) ? 'a helper of every script' : BUILTINS.has(normal) ? 'a builtin of Python' : ''
  if (taken !== '') throw new TypeError(`the tool name ${shown} is ${taken}: give the tool another name`)
  return identifier(normal)
}

/** A Python identifier made from any text: the text itself where it is one, as Python normalises it. */
export function identifier(text: string): string {
  const plain = text.normalize('NFKC').replaceAll(/[^\p{XID_Continue}]/gu, '_')
  const started = /^[\p{XID_Start}_]/u.test(plain) ? plain : `_${plain}`
  return KEYWORDS.has(started) ? `${started}_` : started
}

/** Whether a text can stand as a name in Python source as it is. */
export function isIdentifier(text: string): boolean {
  return identifier(text) === text
}

/** Whether a name is one of Python's builtins. */
export function isBuiltin(name: string): boolean {
  return BUILTINS.has(name)
}

/** Reserved words, and `__debug__`, which nothing may be bound to either. */
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global ' +
    'if import in is lambda nonlocal not or pass raise return try while with yield __debug__'
  ).split(' '),
)

/** What the harness gives every script. */
const HELPERS: ReadonlySet<string> = new Set([
  'emit_result',
  'emit_intermediate',
  'emit_log',
  'describe_tool',
  'ToolError',
])

/** Public names of the module `builtins` of Python 3.10 to 3.13, `site`'s included. */
const BUILTINS: ReadonlySet<string> = new Set(
  (
    'ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError ' +
    'BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ' +
    'ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ' +
    'ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ' +
    'ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError ' +
    'KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None NotADirectoryError NotImplemented ' +
    'NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError ProcessLookupError ' +
    'PythonFinalizationError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning ' +
    'StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError True ' +
    'TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError ' +
    'UnicodeWarning UserWarning ValueError Warning ZeroDivisionError abs aiter all anext any ascii bin bool ' +
    'breakpoint bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod ' +
    'enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input int ' +
    'isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow print ' +
    'property quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip'
  ).split(' '),
)
