// The field's words for our settings: names that other programs have for them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct FieldWords {
  std::string_view ours;  // our setting: "microbatch"
  // How we do it, for a sentence behind "there is no --theirs". Empty: only the name differs.
  std::string_view explanation;
  std::vector<std::string_view>
      theirs;  // in lower case, '-' between words; none is a setting of ours
};

// One row per answer; every word is in one row.
std::span<const FieldWords> all_field_words();

// "activation checkpointing ... is --memory BYTES"; none where `name` is no such word, or its
// setting is none of `known`. '_' and capitals do not matter.
std::optional<std::string> in_our_words(std::string_view name, std::span<const std::string> known);

}  // namespace thimble
