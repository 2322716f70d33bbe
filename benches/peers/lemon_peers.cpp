// The solvers of LEMON (https://lemon.cs.elte.hu) on an .asn file:
//
//     lemon_peers SOLVER FILE REPS       one line of JSON a solve, the first a warm-up
//
// As minimum-cost flow the instance has R + D + 1 nodes and E + R + D arcs of capacity 1: a request
// reaches the sink through a driver, or directly at its unmatched cost. As maximum-weight matching an
// edge weighs what it saves. Conversion and solve are timed apart; the call alone is the solve.
#include <lemon/capacity_scaling.h>
#include <lemon/cost_scaling.h>
#include <lemon/matching.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Edge {
  int request, driver;
  int64_t cost;
};

struct Instance {
  int requests = 0, drivers = 0;
  int64_t unmatched = 0;
  std::vector<Edge> edges;
};

struct Sample {
  double convert_ms, solve_ms;
  int64_t objective;
};

static Instance read(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  Instance instance;
  std::string line;
  while (std::getline(file, line)) {
    Edge edge;
    long long number;
    if (std::sscanf(line.c_str(), "a %d %d %lld", &edge.request, &edge.driver, &number) == 3) {
      edge.cost = number;
      instance.edges.push_back(edge);
    } else if (std::sscanf(line.c_str(), "c unmatched_cost %lld", &number) == 1) {
      instance.unmatched = number;
    } else {
      std::sscanf(line.c_str(), "p asn %d %d", &instance.requests, &instance.drivers);
    }
  }
  return instance;
}

using Clock = std::chrono::steady_clock;

static double ms(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// The cost of the chosen edges and of everybody left; refuses what is no matching.
template <class Chosen>
static int64_t objective(const Instance& instance, Chosen chosen) {
  std::vector<char> request_taken(instance.requests), driver_taken(instance.drivers);
  int64_t total = instance.unmatched * int64_t(instance.requests);
  for (size_t e = 0; e < instance.edges.size(); ++e) {
    if (!chosen(int(e))) continue;
    const Edge& edge = instance.edges[e];
    if (request_taken[edge.request]++ || driver_taken[edge.driver]++)
      throw std::runtime_error("not a matching");
    total += edge.cost - instance.unmatched;
  }
  return total;
}

template <class Solver>
static Sample flow(const Instance& instance) {
  const auto started = Clock::now();
  const int requests = instance.requests, drivers = instance.drivers;
  const int edges = int(instance.edges.size()), sink_id = requests + drivers;
  lemon::SmartDigraph graph;
  graph.reserveNode(sink_id + 1);
  graph.reserveArc(edges + sink_id);
  for (int node = 0; node <= sink_id; ++node) graph.addNode();
  const auto node = [&](int id) { return graph.nodeFromId(id); };
  for (const Edge& edge : instance.edges)
    graph.addArc(node(edge.request), node(requests + edge.driver));
  for (int side = 0; side < sink_id; ++side) graph.addArc(node(side), node(sink_id));
  lemon::SmartDigraph::ArcMap<int64_t> cost(graph, 0);
  lemon::SmartDigraph::ArcMap<int> capacity(graph, 1);
  lemon::SmartDigraph::NodeMap<int> supply(graph, 0);
  for (int e = 0; e < edges; ++e) cost[graph.arcFromId(e)] = instance.edges[e].cost;
  for (int request = 0; request < requests; ++request) {
    cost[graph.arcFromId(edges + request)] = instance.unmatched;
    supply[node(request)] = 1;
  }
  supply[node(sink_id)] = -requests;
  Solver solver(graph);
  solver.upperMap(capacity).costMap(cost).supplyMap(supply);
  const auto converted = Clock::now();
  if (solver.run() != Solver::OPTIMAL) throw std::runtime_error("not optimal");
  const auto solved = Clock::now();
  const auto chosen = [&](int e) { return solver.flow(graph.arcFromId(e)) > 0; };
  return {ms(started, converted), ms(converted, solved), objective(instance, chosen)};
}

static Sample matching(const Instance& instance) {
  const auto started = Clock::now();
  lemon::SmartGraph graph;
  graph.reserveNode(instance.requests + instance.drivers);
  graph.reserveEdge(instance.edges.size());
  for (int node = 0; node < instance.requests + instance.drivers; ++node) graph.addNode();
  for (const Edge& edge : instance.edges)
    graph.addEdge(graph.nodeFromId(edge.request), graph.nodeFromId(instance.requests + edge.driver));
  lemon::SmartGraph::EdgeMap<int64_t> saved(graph);
  for (size_t e = 0; e < instance.edges.size(); ++e)
    saved[graph.edgeFromId(int(e))] = instance.unmatched - instance.edges[e].cost;
  lemon::MaxWeightedMatching<lemon::SmartGraph, lemon::SmartGraph::EdgeMap<int64_t>> solver(graph, saved);
  const auto converted = Clock::now();
  solver.run();
  const auto solved = Clock::now();
  const auto chosen = [&](int e) { return solver.matching(graph.edgeFromId(e)); };
  return {ms(started, converted), ms(converted, solved), objective(instance, chosen)};
}

static Sample solve(const std::string& solver, const Instance& instance) {
  using Graph = lemon::SmartDigraph;
  if (solver == "lemon_network_simplex") return flow<lemon::NetworkSimplex<Graph, int, int64_t>>(instance);
  if (solver == "lemon_cost_scaling") return flow<lemon::CostScaling<Graph, int, int64_t>>(instance);
  if (solver == "lemon_capacity_scaling") return flow<lemon::CapacityScaling<Graph, int, int64_t>>(instance);
  if (solver == "lemon_weighted_matching") return matching(instance);
  throw std::runtime_error("no solver " + solver);
}

int main(int count, char** arguments) try {
  if (count != 4) throw std::runtime_error("lemon_peers SOLVER FILE REPS");
  const Instance instance = read(arguments[2]);
  for (int rep = 0; rep <= std::stoi(arguments[3]); ++rep) {
    const Sample sample = solve(arguments[1], instance);
    std::printf("{\"convert_ms\":%.6f,\"solve_ms\":%.6f,\"objective\":%lld}\n", sample.convert_ms,
                sample.solve_ms, static_cast<long long>(sample.objective));
    std::fflush(stdout);
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
