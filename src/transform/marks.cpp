#include "transform/marks.h"

#include <fnmatch.h>

#include "base/error.h"

namespace thimble {
namespace {

bool can_be_marked(const Node& node, Mark mark) {
  if (node.backward || !node.op->updates.empty()) return false;
  return mark == Mark::keep || node.op->recompute != Recompute::never;
}

void apply(Graph& graph, const std::vector<std::string>& patterns, Mark mark,
           std::string_view flag) {
  for (const std::string& pattern : patterns) {
    bool matched = false;
    for (Node& node : graph.nodes) {
      if (!can_be_marked(node, mark) || fnmatch(pattern.c_str(), node.name.c_str(), 0) != 0)
        continue;
      matched = true;
      user_check(node.mark == Mark::automatic || node.mark == mark,
                 "'{}' is marked both to keep and to recompute; make the patterns narrower",
                 node.name);
      node.mark = mark;
    }
    user_check(matched,
               "{} '{}' matches no node of {}; names look like '{}' (see `thimble plan -v`)", flag,
               pattern, graph.name, graph.nodes.empty() ? "" : graph.nodes.front().name);
  }
}

}  // namespace

void apply_marks(Graph& graph, const Marks& marks) {
  apply(graph, marks.keep, Mark::keep, "--keep");
  apply(graph, marks.recompute, Mark::recompute, "--recompute");
}

}  // namespace thimble
