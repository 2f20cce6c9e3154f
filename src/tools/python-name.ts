import { findHelper } from '../protocol/index.ts'
import { formatValue, PYTHON_KEYWORDS } from '../support/index.ts'

/** Maximum length of a tool name; the APIs of models have the same limit. */
const MAX_NAME = 64

/**
 * The Python name of a tool: its own name if it is a plain Python identifier, else one derived from it
 * (`get-user` → `get_user`, `class` → `class_`, `1st` → `_1st`).
 * @throws TypeError for a name that has no usable characters, is too long, or is reserved for a helper, a
 * builtin of Python, or Python itself (`__import__`).
 */
export function toolName(given: string): string {
  const shown = formatValue(given, MAX_NAME)
  if (given === '') throw new TypeError('a tool has an empty name')
  if (given.length > MAX_NAME) {
    throw new TypeError(`the tool name ${shown} has ${given.length} characters; at most ${MAX_NAME} are allowed`)
  }
  // Python normalises names in the same way.
  const normal = given.normalize('NFKC')
  // Letters of other alphabets can look like Latin ones, so that two tools look alike.
  const nonAscii = /[^\0-\x7F]/u.exec(normal)?.[0]
  if (nonAscii !== undefined) {
    throw new TypeError(`the tool name ${shown} holds ${JSON.stringify(nonAscii)}: use ASCII letters, digits and _`)
  }
  if (!/[A-Za-z0-9]/.test(normal)) throw new TypeError(`the tool name ${shown} has no letter and no digit`)
  if (/^__.*__$/.test(normal)) throw new TypeError(`the tool name ${shown} is reserved for Python; rename the tool`)
  const owner =
    findHelper(normal) !== undefined ? 'a helper of scripts' : BUILTINS.has(normal) ? 'a builtin of Python' : ''
  if (owner !== '') throw new TypeError(`the tool name ${shown} is reserved for ${owner}; rename the tool`)
  return identifier(normal)
}

/** Derives a Python identifier from a text; an identifier stays as it is, normalised as Python does. */
export function identifier(text: string): string {
  const plain = text.normalize('NFKC').replaceAll(/[^\p{XID_Continue}]/gu, '_')
  const started = /^[\p{XID_Start}_]/u.test(plain) ? plain : `_${plain}`
  return RESERVED.has(started) ? `${started}_` : started
}

/** True if a text is a valid name in Python source. */
export function isIdentifier(text: string): boolean {
  return identifier(text) === text
}

/** True for the name of a Python builtin. */
export function isBuiltin(name: string): boolean {
  return BUILTINS.has(name)
}

/** Names that cannot be assigned to. */
const RESERVED: ReadonlySet<string> = new Set([...PYTHON_KEYWORDS, '__debug__'])

/** Public names of the module `builtins` of Python 3.10 to 3.13, with those that `site` adds. */
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
