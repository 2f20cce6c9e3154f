/** What a call of one of the bridge's functions by WebAssembly comes to, once it is shut. */
const REFUSAL = 'the bridge to JavaScript is shut'

/**
 * The functions of Pyodide's bridge that WebAssembly imports: with them Python makes, reads, changes and calls objects of
 * JavaScript. Types of the bridge stay in Python for good, and with them ways to ask for such an object. With them go
 * Emscripten's ways to run JavaScript that lies in memory as text, or that a module brought.
 */
const FAMILIES =
  /^_{0,2}(Js[A-Zv]|js2python|python2js|pyproxy|hiwire|jslib_init|raw_call|create_promise|wrap_(async_)?generator|ffi_|emscripten_asm_const|emscripten_(async_)?(run|load)_script)/

/** Those of the bridge that share no beginning. */
const OTHERS: ReadonlySet<string> = new Set(
  `
    _agen_handle_result_js array_to_js can_run_sync_js capture_stderr create_once_callable destroy_jsarray_entries
    destroy_proxies destroy_proxies_js destroy_proxy emscripten_set_up_async_input_device_js fail_test
    gc_register_proxies get_async_js_call_done_callback get_length_helper get_length_string get_suspender
    handle_next_result_js is_comlink_proxy my_dict_converter new_error proxy_cache_get proxy_cache_set pyodide_js_init
    restoreState restore_stderr saveState set_pyodide_module set_suspender syncifyHandler throw_no_gil
  `
    .trim()
    .split(/\s+/),
)

/**
 * Those that Python's answer to the guest's own code takes: the exit code becomes a number, and the guest's side looks
 * whether it is an error or nothing at all. None gives away more than that.
 */
const NEEDED: ReadonlySet<string> = new Set(['JsvNum_fromInt', 'JsvError_Check', 'JsvNoValue_Check'])

type Imports = Record<string, unknown>

/** Puts a door before each function of the bridge. Returns what shuts them all, for good. */
export function doorsOf(functions: Imports): () => void {
  let shut = false
  let found = 0
  for (const [name, value] of Object.entries(functions)) {
    if (!(FAMILIES.test(name) || OTHERS.has(name)) || NEEDED.has(name) || typeof value !== 'function') continue
    const given = value as (...args: unknown[]) => unknown
    const door = (...args: unknown[]): unknown => {
      if (shut) throw new Error(`${REFUSAL} (${name})`)
      return given(...args)
    }
    functions[name] = Object.assign(door, given) // Emscripten keeps a function's signature on it
    found += 1
  }
  if (found === 0) throw new Error('this Pyodide has another bridge than the one that is known')
  return () => void (shut = true)
}
