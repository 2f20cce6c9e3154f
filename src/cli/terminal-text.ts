/** Colours (SGR), and control characters that can drive the terminal: title, clipboard, cursor. Tab and newline are not among them. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROLS = /\u001B\[[0-9;]{0,32}m|[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const COLOUR = /^\u001B\[[0-9;]*m$/

/** Makes the text of a script safe for a terminal: keeps colours and carriage returns, and writes other controls as `\x1b`. */
export function escapeForTerminal(text: string): string {
  return text.replace(CONTROLS, (found) => {
    if (found === '\r' || COLOUR.test(found)) return found
    return `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}${found.slice(1)}`
  })
}

/** Ends all colours and styles. */
export const RESET_STYLE = '\u001B[0m'
/**
 * Undoes what a program that had the terminal to itself may have left: styles, a hidden cursor, keys and margins of its own (DECSTR),
 * the alternate screen, reports of the mouse, and marks around pasted text. In a fresh terminal it changes nothing.
 */
export const RESET_TERMINAL: string = `\u001B[!p${RESET_STYLE}\u001B[?1047l\u001B[?1000;1002;1003;1006;2004l`

/** True if the text leaves a style of its own on a terminal; undefined if it changes none. */
export function styleLeftBy(text: string): boolean | undefined {
  const last = text.match(CONTROLS)?.findLast((found) => COLOUR.test(found))
  return last === undefined ? undefined : last !== RESET_STYLE && last !== '\u001B[m'
}

/** Bidirectional control characters: they reorder a line so that it reads as something else. */
const BIDI_CONTROLS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g

/** Writes bidirectional control characters as `\u202e`. */
export function escapeBidiControls(text: string): string {
  return text.replace(BIDI_CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Characters without a shape: joiners, fillers, selectors and tags. A person sees nothing where a script has them. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu

/** Writes characters without a shape as `\u{200b}`. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`)
}

/** Makes foreign text safe inside a message of the command line: escapes controls, colours and direction, indents further lines. */
export function escapeForMessage(text: string): string {
  return escapeBidiControls(text.toWellFormed())
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}${found.slice(1)}`)
    .replace(/\n(?=[^])/g, '\n    ')
}
