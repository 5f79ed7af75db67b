#include "report/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace thimble {
namespace {

void add_live(const Explanation& why, std::string& text) {
  text += fmt::format("  fullest at call {} ('{}'): {} in {} tensors\n", why.peak_call + 1,
                      printable(why.peak_node), to_string(why.peak), why.live.size());
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < std::min(kShown, why.live.size()); ++i) {
    const LiveTensor& live = why.live[i];
    text +=
        fmt::format("  {:>12}  {:<16}{:<44} made at {}, last read at {}\n", to_string(live.bytes),
                    live.role, printable(live.name), live.made + 1, live.last_read + 1);
  }
  const LiveTensor* cheapest = nullptr;
  const auto price = [](const LiveTensor& live) {
    return live.again_ms / static_cast<double>(live.bytes.count);
  };
  for (const LiveTensor& live : why.live) {
    if (live.again_ms < 0) continue;
    if (cheapest == nullptr || price(live) < price(*cheapest)) cheapest = &live;
  }
  if (cheapest != nullptr) {
    text += fmt::format("  cheapest next byte to save: '{}', {} for {:.3f} ms of recomputation\n",
                        printable(cheapest->name), to_string(cheapest->bytes), cheapest->again_ms);
  }
}

void add_shares(const Explanation& why, std::string& text) {
  if (why.gains.empty()) return;
  text += fmt::format("  what each technique brings, from {} and {:.1f} ms\n",
                      to_string(why.plain_arena), why.plain_ms);
  for (const TechniqueGain& share : why.gains) {
    text += fmt::format("  {:>12}  {:>+10.1f} ms  {:<48}{}\n", to_string(share.saved),
                        share.ms_paid, share.what, share.flags);
  }
}

void add_frontier(const Explanation& why, std::string& text) {
  text += "  the price of memory: what a MiB less costs, from one plan to the next\n";
  for (const PricePoint& point : why.frontier) {
    text += fmt::format("  {:>12}  {:>10.1f} ms  {:>10.3f} ms per MiB{}\n", to_string(point.arena),
                        point.ms, point.ms_per_mib, point.chosen ? "   <- this plan" : "");
  }
  if (why.next_mib_ms > 0) {
    text += fmt::format("  the next MiB costs {:.3f} ms\n", why.next_mib_ms);
  } else {
    text += "  the next MiB costs nothing, or cannot be had by recomputation alone\n";
  }
}

// "recomputed as int4": the field's word in place of the one that JSON keeps.
std::string residency_text(const TensorResidency& tensor) {
  constexpr std::string_view kOld = "computed again";
  const bool recomputed = tensor.fate.starts_with(kOld);
  return recomputed ? "recomputed" + tensor.fate.substr(kOld.size()) : tensor.fate;
}

void add_tensors(const Explanation& why, std::string& text) {
  text += "  large activations that the backward pass needs\n";
  for (const TensorResidency& fate : why.tensors) {
    text += fmt::format(
        "  {:>12}  {:<44} {}{}: {}\n", to_string(fate.bytes), printable(fate.name),
        residency_text(fate),
        fate.kept < fate.bytes && fate.kept > Bytes() ? ", " + to_string(fate.kept) : "",
        printable(fate.why));
  }
}

}  // namespace

std::string explanation_text(const Explanation& why) {
  std::string text;
  add_live(why, text);
  add_shares(why, text);
  add_frontier(why, text);
  add_tensors(why, text);
  return text;
}

nlohmann::json to_json(const Explanation& why) {
  nlohmann::json live = nlohmann::json::array();
  for (const LiveTensor& tensor : why.live) {
    live.push_back({{"name", tensor.name},
                    {"role", tensor.role},
                    {"type", tensor.type},
                    {"bytes", tensor.bytes.count},
                    {"made", tensor.made},
                    {"last_read", tensor.last_read},
                    {"again_ms", tensor.again_ms}});
  }
  nlohmann::json tensors = nlohmann::json::array();
  for (const TensorResidency& fate : why.tensors) {
    tensors.push_back({{"name", fate.name},
                       {"fate", fate.fate},
                       {"residency", fate.residency},
                       {"bytes", fate.bytes.count},
                       {"kept_bytes", fate.kept.count},
                       {"again_ms", fate.again_ms},
                       {"why", fate.why}});
  }
  nlohmann::json shares = nlohmann::json::array();
  for (const TechniqueGain& share : why.gains) shares.push_back(to_json(share));
  nlohmann::json frontier = nlohmann::json::array();
  for (const PricePoint& point : why.frontier) {
    frontier.push_back({{"arena_bytes", point.arena.count},
                        {"predicted_step_ms", point.ms},
                        {"ms_per_mib", point.ms_per_mib},
                        {"chosen", point.chosen}});
  }
  return {{"peak_call", why.peak_call},
          {"peak_node", why.peak_node},
          {"live", live},
          {"tensors", tensors},
          {"shares", shares},
          {"plain_arena_bytes", why.plain_arena.count},
          {"plain_step_ms", why.plain_ms},
          {"frontier", frontier},
          {"next_mib_ms", why.next_mib_ms}};
}

}  // namespace thimble
