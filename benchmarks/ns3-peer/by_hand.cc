// The two-switch network as one writes it by hand on ns-3's event loop, for speed alone: a packet is 16 bytes that are
// passed by value, nothing but Simulator::Schedule is used of ns-3, and there are neither bytes nor headers. Each switch
// is one first-in, first-out server with nine places and a constant service time; four flows send bursts of three
// packets, paced so that nothing is lost. A packet has four events: it is sent, a switch is done with it, it comes to
// the other, and that is done with it.
//
// Prints one line of JSON: packets received, simulated seconds.

#include "ns3/core-module.h"

#include <array>
#include <cstdint>
#include <iostream>

using namespace ns3;

namespace
{
constexpr int64_t kFrameBits = 306 * 8;
constexpr int64_t kWireNs = (306 + 8) * 80;        // preamble and frame at 100 Mbit/s
constexpr int64_t kSlotNs = (306 + 8 + 12) * 80;   // and the gap behind it
constexpr int64_t kServiceNs = 206'600;            // p_CPU at 306 bytes and 17 five-tuple entries
constexpr uint32_t kPlaces = 9;
constexpr uint32_t kBurst = 3;

struct Packet
{
    uint32_t flow;
    uint32_t sequence;
    int64_t sentNs;
};

static_assert(sizeof(Packet) == 16);

struct Switch
{
    std::array<Packet, kPlaces> places;
    uint32_t first = 0;
    uint32_t held = 0;
};

std::array<Switch, 2> g_switches;
std::array<uint32_t, 4> g_sequences{};
uint64_t g_received = 0;
uint64_t g_dropped = 0;
int64_t g_longestNs = 0;
int64_t g_endNs = 0;
Time g_gap;
const Time g_slot = NanoSeconds(kSlotNs);
const Time g_wire = NanoSeconds(kWireNs);
const Time g_service = NanoSeconds(kServiceNs);

void Serve(uint32_t index);

void
Arrive(uint32_t index, Packet packet)
{
    Switch& at = g_switches[index];
    if (at.held == kPlaces)
    {
        ++g_dropped;
        return;
    }
    uint32_t place = at.first + at.held;
    at.places[place < kPlaces ? place : place - kPlaces] = packet;
    if (++at.held == 1)
    {
        Simulator::Schedule(g_service, &Serve, index);
    }
}

void
Serve(uint32_t index)
{
    Switch& at = g_switches[index];
    const Packet packet = at.places[at.first];
    at.first = at.first + 1 == kPlaces ? 0 : at.first + 1;
    if (--at.held > 0)
    {
        Simulator::Schedule(g_service, &Serve, index);
    }
    // Flows 0 and 1 come from the hosts at switch 0, flows 2 and 3 from those at switch 1.
    if (index == packet.flow / 2)
    {
        Simulator::Schedule(g_wire, &Arrive, 1 - index, packet);
    }
    else
    {
        ++g_received;
        const int64_t delayNs = Simulator::Now().GetNanoSeconds() - packet.sentNs;
        g_longestNs = delayNs > g_longestNs ? delayNs : g_longestNs;
    }
}

void
Send(uint32_t flow)
{
    const int64_t nowNs = Simulator::Now().GetNanoSeconds();
    const uint32_t sequence = g_sequences[flow]++;
    Arrive(flow / 2, Packet{flow, sequence, nowNs});
    if (nowNs < g_endNs)
    {
        Simulator::Schedule((sequence + 1) % kBurst ? g_slot : g_gap, &Send, flow);
    }
}
} // namespace

int
main(int argc, char* argv[])
{
    double seconds = 100;
    double flow_bps = 2'370'000; // frames counted with FCS: the lab's fifth-rate allocation
    CommandLine command(__FILE__);
    command.AddValue("seconds", "simulated time in which the hosts send", seconds);
    command.AddValue("flow-bps", "rate of each of the four flows, bits of frames a second", flow_bps);
    command.Parse(argc, argv);

    g_endNs = static_cast<int64_t>(seconds * 1e9);
    const auto burstNs = static_cast<int64_t>(kBurst * kFrameBits * 1e9 / flow_bps);
    g_gap = NanoSeconds(burstNs - (kBurst - 1) * kSlotNs);
    for (uint32_t flow = 0; flow < g_sequences.size(); ++flow)
    {
        Simulator::Schedule(NanoSeconds(kWireNs + flow * burstNs / 4), &Send, flow);
    }
    Simulator::Run();
    Simulator::Destroy();
    std::cout << "{\"packets\": " << g_received << ", \"dropped\": " << g_dropped << ", \"longest_ns\": " << g_longestNs
              << ", \"simulated_s\": " << seconds << "}" << std::endl;
    return 0;
}
