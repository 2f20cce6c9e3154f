/** A secret that JSON and Python write in an escaped form. */
export const SECRET = 's3cret-välue\n"line2"'

/** The secret as an option of a run. */
export const secrets: Readonly<Record<string, string>> = { TOOL_A_KEY: SECRET }

/** The marker in its place. */
export const MARK = '[redacted:TOOL_A_KEY]'
