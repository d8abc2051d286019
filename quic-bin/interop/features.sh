# The rows of the table: what is run, and what has to be seen for a pass.
#
# A row names the files to fetch, the protocol, the flags of our client and of our server, and what our own qlog has to
# show (as the client, then as the server), beside the files' bytes: extended regular expressions, each for one line. A
# row whose flags our programs don't have is left out, and the document says so. "-" is nothing.

declare -a FEATURES=()
declare -A TITLE FILES ALPN CLIENT_FLAGS SERVER_FLAGS CLIENT_SHOWS SERVER_SHOWS

# feature NAME TITLE FILES ALPN CLIENT_FLAGS SERVER_FLAGS CLIENT_SHOWS SERVER_SHOWS
feature() {
  FEATURES+=("$1")
  TITLE[$1]=$2 FILES[$1]=$3 ALPN[$1]=$4
  CLIENT_FLAGS[$1]=${5#-} SERVER_FLAGS[$1]=${6#-} CLIENT_SHOWS[$1]=${7#-} SERVER_SHOWS[$1]=${8#-}
}

sent='"quic:packet_sent".*' received='"quic:packet_received".*'
frame='"frame_type":' kind='"packet_type":'

feature handshake "handshake, 1 KB" small hq-interop - - - -
feature transfer "transfer, 100 MB" large hq-interop - - - -
feature multiplexing "200 files at once" many hq-interop - - - -
feature http3 "HTTP/3, 3 files" three h3 - - - -
feature retry "Retry" small hq-interop - " --retry" \
  "$received$kind\"retry\"" '"retry_source_connection_id"'
feature chacha20 "ChaCha20 alone" medium hq-interop " --cipher chacha20" " --cipher chacha20" \
  '"tls_cipher":"[^"]*CHACHA20' '"tls_cipher":"[^"]*CHACHA20'
feature key-update "key update" medium hq-interop " --key-update" - \
  '"key_phase":1,"trigger":"local_update"' '"key_phase":1,"trigger":"remote_update"'
feature ecn "ECN, validated by us" medium hq-interop - - '"new":"capable"' '"new":"capable"'
feature resumption "resumption" two hq-interop " --resume" - \
  '"resumption_allowed":true' '"resumption_allowed":true'
feature zero-rtt "0-RTT" two hq-interop " --0rtt" - "$sent$kind\"0RTT\"" "$received$kind\"0RTT\""
feature v2 "version 2" small hq-interop " --quic-versions v2" " --quic-versions v2,v1" \
  "$received$kind\"handshake\".*\"version\":\"6b3343cf\"" \
  "$received$kind\"handshake\".*\"version\":\"6b3343cf\""
feature compatible "version 1 to 2, compatibly" small hq-interop \
  " --quic-versions v2,v1 --first-version v1" " --quic-versions v2,v1" \
  "$sent$kind\"initial\".*\"version\":\"00000001\" && $received$kind\"handshake\".*\"version\":\"6b3343cf\"" \
  "$received$kind\"handshake\".*\"version\":\"6b3343cf\""
feature rebinding "rebinding (the client's port), 20 MB" longer hq-interop " --rebind-after 0.02" - \
  "$received${frame}\"path_challenge\"" "$received${frame}\"path_response\""
feature migration "migration by the client, 20 MB" longer hq-interop " --migrate-after 0.02" - \
  "$received${frame}\"path_response\"" "$received${frame}\"path_response\""
feature client-hello "ClientHello in several packets" small hq-interop " --large-client-hello" - \
  "$sent$kind\"initial\".*${frame}\"crypto\",\"offset\":[1-9]" \
  "$received$kind\"initial\".*${frame}\"crypto\",\"offset\":[1-9]"
feature datagrams "datagrams, acknowledged" small hq-interop " --datagrams 100" " --datagram-echo" \
  "$sent${frame}\"datagram\"" "$received${frame}\"datagram\""
feature datagram-echo "datagrams, returned" small hq-interop " --datagrams 100" " --datagram-echo" \
  "$received${frame}\"datagram\"" "$sent${frame}\"datagram\""
