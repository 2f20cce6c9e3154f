/** A global name that the harness provides to scripts, or reserves. */
export interface ScriptHelper {
  /** The call or the class in Python's syntax. */
  readonly signature: string
  readonly kind: 'function' | 'class'
  /** `tools`: only in runs with tools. `reserved`: no script has it yet, and tools and inputs must not use the name. */
  readonly when: 'always' | 'tools' | 'reserved'
  readonly meaning: string
}

/** All names that the harness provides or reserves. A test compares them with the harness and its checker. */
export const SCRIPT_HELPERS: Readonly<Record<string, ScriptHelper>> = {
  emit_result: {
    signature: 'emit_result(data=None)',
    kind: 'function',
    when: 'always',
    meaning: 'hands over the final result; the first call counts',
  },
  emit_intermediate: {
    signature: 'emit_intermediate(label, data=None)',
    kind: 'function',
    when: 'always',
    meaning: 'hands over a partial result while the script continues',
  },
  emit_log: {
    signature: "emit_log(message, level='info')",
    kind: 'function',
    when: 'always',
    meaning: "writes a diagnostic message to the host's log",
  },
  display: {
    signature: 'display(*objects, **options)',
    kind: 'function',
    when: 'always',
    meaning: 'shows figures, tables, pictures and other values with a rich representation',
  },
  describe_tool: {
    signature: 'describe_tool(name)',
    kind: 'function',
    when: 'tools',
    meaning: 'returns the signature and the description of a tool',
  },
  ToolError: {
    signature: 'ToolError',
    kind: 'class',
    when: 'always',
    meaning: 'the exception that a failed tool call raises; `code` names the reason',
  },
  ConversionError: {
    signature: 'ConversionError',
    kind: 'class',
    when: 'always',
    meaning: 'the `TypeError` that `emit_result` and `emit_intermediate` raise for a value that JSON cannot carry',
  },
}

/** Returns the helper with this name, or undefined. */
export function findHelper(name: string): ScriptHelper | undefined {
  return Object.hasOwn(SCRIPT_HELPERS, name) ? SCRIPT_HELPERS[name] : undefined
}
