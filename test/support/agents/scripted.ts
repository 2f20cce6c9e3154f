/** The script that the scripted models of docs/agents.md write, and the words that they end with. */
export const SCRIPT = 'emit_result(3 * price_of(sku="A-1"))'
export const SCRIPT_WITH_PROGRESS = `emit_log("asking for the price")
price = price_of(sku="A-1")
emit_intermediate("price", price)
emit_result(3 * price)`
export const WORDS: readonly [string, string] = ['Three A-1 cost ', '37.50 euros.']
export const TOOL_NAME = 'run_python'
