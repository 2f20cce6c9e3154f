/** Version of the wire protocol; a harness that speaks another one is refused. */
export const PROTOCOL_VERSION = 2
