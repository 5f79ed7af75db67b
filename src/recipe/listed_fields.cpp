// The list as people read it: the fields of all models at once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "recipe/list.h"

namespace thimble {
namespace {

// The description that several families give of a field alike.
struct Clause {
  std::string help;
  std::vector<std::string> models = {};
  std::vector<std::string> usual = {};
};

std::string usual_of(const Field& field) {
  if (!field.about().usual.empty()) return field.about().usual;
  return field.kind() == Field::Kind::toggle ? "off" : field.text();
}

// A field whose value is what it is now, whatever becomes of its object.
Field frozen(const Field& field) {
  return {field.name(),
          field.kind(),
          field.group(),
          [value = field.get()] { return value; },
          [](const nlohmann::json&) {},
          field.about()};
}

// By family, in their order.
std::vector<std::vector<Field>> fields_of_families() {
  std::vector<std::vector<Field>> all;
  for (const ModelFamily* family : all_model_families()) {
    ModelOptions options;
    Fields listed;
    listed.group("Model");
    family->fields(options, listed);
    all.emplace_back();
    for (const Field& field : std::move(listed).take()) all.back().push_back(frozen(field));
  }
  return all;
}

// "mlp, lstm: layers (2); unet: ...".
ListedField merged(const Field& field, const std::vector<std::vector<Field>>& of_families) {
  std::vector<Clause> clauses;
  ListedField listed = {field, {}, {}, {}};
  for (size_t f = 0; f < of_families.size(); ++f) {
    const Field* const own = find_field(of_families[f], field.name());
    if (own == nullptr) continue;
    listed.models.emplace_back(all_model_families()[f]->name());
    auto at = std::ranges::find(clauses, own->about().help, &Clause::help);
    if (at == clauses.end()) at = clauses.insert(at, Clause{own->about().help});
    at->models.push_back(listed.models.back());
    at->usual.push_back(usual_of(*own));
  }
  for (Clause& clause : clauses) {
    const bool one = std::ranges::all_of(
        clause.usual, [&](const std::string& usual) { return usual == clause.usual[0]; });
    if (one) clause.usual.resize(1);
    const char* const gap = listed.help.empty() ? "" : "; ";
    listed.help += fmt::format("{}{}: {} ({})", gap, fmt::join(clause.models, ", "), clause.help,
                               fmt::join(clause.usual, ", "));
    listed.usual += fmt::format("{}{}", gap, fmt::join(clause.usual, ", "));
  }
  return listed;
}

}  // namespace

std::vector<ListedField> listed_fields() {
  const std::vector<std::vector<Field>> of_families = fields_of_families();
  std::vector<ListedField> all;
  Recipe usual;
  size_t place = 0;  // of the models' own
  Fields common;
  list_fields(usual, common, {}, [&](Fields& fields) { place = fields.count(); });
  for (const Field& field : std::move(common).take()) {
    all.push_back({frozen(field), {}, field.about().help, usual_of(field)});
  }
  std::vector<ListedField> own;
  for (const std::vector<Field>& fields : of_families) {
    for (const Field& field : fields) {
      const bool known = std::ranges::any_of(
          own, [&](const ListedField& listed) { return listed.field.name() == field.name(); });
      if (!known) own.push_back(merged(field, of_families));
    }
  }
  all.insert(all.begin() + static_cast<ptrdiff_t>(place), own.begin(), own.end());
  return all;
}

}  // namespace thimble
