// The REST interface as Swagger UI shows it, from the service's own description; nothing of it is checked elsewhere.

window.SwaggerUIBundle({ url: "/openapi.json", dom_id: "#api", deepLinking: true, validatorUrl: null });
