use tollgate_model::Boundary::Socket;

entries! {
    NETFILTER [Socket] "each packet passes the chains of rules that are loaded" ("net/netfilter/core.c");
    NF_CONNTRACK [Socket] "where rules ask for it, each packet is looked up in the table of connections"
        ("net/netfilter/Kconfig");
    NET_RX_BUSY_POLL [Socket] "a reader can poll the device instead of sleeping" ("net/Kconfig");
    _ => NET NF NFT IP IP6 IPV6 INET INET6 TCP UDP UNIX PACKET XFRM XDP TLS MPTCP BRIDGE VLAN BONDING
        DEFAULT_TCP_CONG DEFAULT_BBR DEFAULT_CUBIC SYN_COOKIES SCTP DCCP RDS TIPC ATM L2TP LLC LLC2 ATALK X25
        LAPB PHONET 6LOWPAN IEEE802154 MAC802154 BATMAN OPENVSWITCH MPLS HSR CAN BT AF RXRPC RXKAD WIRELESS
        CFG80211 MAC80211 RFKILL NFC LWTUNNEL STREAM_PARSER ETHTOOL FIB RPS RFS XPS BQL SYNPROXY SMC
        DNS_RESOLVER QRTR MCTP AX25 NETROM ROSE WIREGUARD VXLAN GENEVE MACVLAN IPVLAN TUN VETH DUMMY
}
