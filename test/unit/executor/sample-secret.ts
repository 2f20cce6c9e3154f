/** A secret that stands in JSON and in Python in another form than it has. */
export const SECRET = 's3cret-välue\n"line2"'

/** As a run gets it. */
export const secrets: Readonly<Record<string, string>> = { TOOL_A_KEY: SECRET }

/** The marker in its place. */
export const MARK = '[redacted:TOOL_A_KEY]'
