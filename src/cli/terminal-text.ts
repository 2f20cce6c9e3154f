/** Colours (SGR) are kept; every other control character but these could drive the terminal: titles, clipboard, cursor. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROLS = /\u001B\[[0-9;]{0,32}m|[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const COLOUR = /^\u001B\[[0-9;]*m$/

/** A text of a script as a terminal may show it: control sequences are written out as `\x1b`. */
export function forTerminal(text: string): string {
  return text.replace(CONTROLS, (found) => {
    if (found === '\r' || COLOUR.test(found)) return found
    return `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}${found.slice(1)}`
  })
}

/** Marks that turn the order of characters round, so that a line reads as something else than it is. */
const TURNING = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g

/** Marks of writing direction written out as `\u202e`. */
export function withoutTurning(text: string): string {
  return text.replace(TURNING, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/**
 * The same for a text that goes into a line of ours: no colours, nothing that turns the text round, and each further line
 * is indented.
 */
export function inOurLine(text: string): string {
  return withoutTurning(text.toWellFormed())
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}${found.slice(1)}`)
    .replace(/\n(?=[^])/g, '\n    ')
}
