/** The error of a call to the bridge after it is disabled. */
const REFUSAL = 'the bridge to JavaScript is disabled'

/**
 * The functions of Pyodide's bridge that WebAssembly imports: Python uses them to make, read, change and call objects of
 * JavaScript. Types of the bridge cannot be removed from Python, so a script can still ask for such an object. The pattern also
 * covers the functions of Emscripten that run JavaScript from memory or from a module.
 */
const FAMILIES =
  /^_{0,2}(Js[A-Zv]|js2python|python2js|pyproxy|hiwire|jslib_init|raw_call|create_promise|wrap_(async_)?generator|ffi_|emscripten_asm_const|emscripten_(async_)?(run|load)_script)/

/** Functions of the bridge without a common prefix. */
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
 * Functions that stay enabled, because the exit code passes through them: one makes a number, two test whether a value is an error
 * or undefined. None gives access to an object.
 */
const NEEDED: ReadonlySet<string> = new Set(['JsvNum_fromInt', 'JsvError_Check', 'JsvNoValue_Check'])

type Imports = Record<string, unknown>

/** Wraps each function of the bridge. Returns a function that disables all of them permanently. */
export function guardBridge(functions: Imports): () => void {
  let isDisabled = false
  let found = 0
  for (const [name, value] of Object.entries(functions)) {
    if (!(FAMILIES.test(name) || OTHERS.has(name)) || NEEDED.has(name) || typeof value !== 'function') continue
    const given = value as (...args: unknown[]) => unknown
    const callUnlessDisabled = (...args: unknown[]): unknown => {
      if (isDisabled) throw new Error(`${REFUSAL} (${name})`)
      return given(...args)
    }
    functions[name] = Object.assign(callUnlessDisabled, given) // Emscripten stores a signature on the function
    found += 1
  }
  if (found === 0)
    throw new Error('no bridge functions found in this version of Pyodide; install the version that Sandglass supports')
  return () => void (isDisabled = true)
}
